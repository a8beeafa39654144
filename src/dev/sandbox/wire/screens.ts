// Renders screens: XML with attributes, and the JSON that such XML converts to (Spec: attributes behind `@`, text in `#text`).
// Knows the choices about screens, but not the application.

import type { Choices } from '../behaviour/choices.ts';
import type { FilledAnswer, FilledQuestion, FilledScreen } from '../people/plan.ts';
import { escapeXml } from './render-xml.ts';

/** JSON text of an application's screens. */
export function renderScreenJson(screens: readonly FilledScreen[], choices: Choices): string {
  const drawn = screens.map((screen) => toScreen(screen, choices));
  const extras = choices.screenExtras ? { '?xml': { '@version': '1.0', '@encoding': 'utf-8' } } : {};
  switch (choices.screenShape) {
    case 'null':
      return JSON.stringify({ ...extras, screen: null });
    case 'absent':
      return JSON.stringify(extras);
    case 'unwrapped':
      return JSON.stringify(drawn[0] ?? {});
    default:
      // Spec: the text says array, the sample shows an object; two screens need an array.
      return JSON.stringify({
        ...extras,
        screen: choices.screenShape === 'object' && drawn.length === 1 ? drawn[0] : drawn,
      });
  }
}

/** XML of an application's screens; several get a root element <screens> (Spec silent: two screens in XML). */
export function renderScreenXml(screens: readonly FilledScreen[], choices: Choices): string {
  const drawn = screens.map((screen) => {
    const attributes = renderAttributes({
      id: screen.id,
      name: screen.name,
      successful: toSuccessful(screen, choices),
    });
    return `<screen${attributes}>${screen.questions.map((question) => renderQuestion(question, choices)).join('')}</screen>`;
  });
  const root = drawn.length === 1 ? drawn[0] : `<screens>${drawn.join('')}</screens>`;
  return `<?xml version="1.0" encoding="utf-8"?>${root}`;
}

function toScreen(screen: FilledScreen, choices: Choices): object {
  const questions = screen.questions.map((question) => ({
    '@id': question.id,
    '@type': question.type,
    '@text': question.text,
    ...toAnswers(question, choices),
  }));
  const successful = toSuccessful(screen, choices);
  return {
    ...(choices.screenExtras ? { '@xmlns': 'http://schemas.example.com/screen' } : {}),
    '@id': screen.id,
    '@name': screen.name,
    ...(successful === undefined ? {} : { '@successful': successful }),
    ...toShaped('question', questions, choices.questionShape),
  };
}

function toAnswers(question: FilledQuestion, choices: Choices): object {
  const answers = question.answers.map((answer) => toAnswer(answer, choices));
  switch (choices.answerShape) {
    case 'drawn':
      // Spec: answer is an array, or a single object for a Text question.
      return { answer: question.type === 'Text' && answers.length === 1 ? answers[0] : answers };
    case 'arrays':
      return { answer: answers };
    case 'strings':
      return { answer: question.answers.map((answer) => answer.text) };
    case 'objectsWhenOne':
      return toShaped('answer', answers, 'objectWhenOne');
    default:
      return toShaped('answer', answers, choices.answerShape);
  }
}

function toShaped(name: string, list: readonly object[], shape: Choices['questionShape']): object {
  if (shape === 'absent') return {};
  if (shape === 'null') return { [name]: null };
  return { [name]: shape === 'objectWhenOne' && list.length === 1 ? list[0] : list };
}

function toAnswer(answer: FilledAnswer, choices: Choices): object {
  const selected = toSelected(answer, choices);
  return {
    '@id': answer.id,
    ...(selected === undefined ? {} : { '@selected': selected }),
    ...toText(answer.text, choices),
  };
}

function toText(text: string, choices: Choices): object {
  switch (choices.answerText) {
    case 'absent':
      return {};
    case 'cdata':
      return { '#cdata-section': text };
    case 'list':
      return { '#text': [text] };
    case 'number':
      return { '#text': /^\d+$/.test(text) ? Number(text) : text };
    default:
      return { '#text': text };
  }
}

function toSuccessful(screen: FilledScreen, choices: Choices): string | undefined {
  switch (choices.successful) {
    case 'absent':
      return undefined;
    case 'empty':
      return '';
    case 'lower':
      return String(screen.successful);
    case 'pass':
      return screen.successful ? 'Pass' : 'Fail';
    default:
      return screen.successful ? 'True' : 'False';
  }
}

/** Spec: answer.selected is present only on the selected answer. */
function toSelected(answer: FilledAnswer, choices: Choices): string | undefined {
  if (choices.selected === 'absent') return undefined;
  if (!answer.selected) return choices.selected === 'falseToo' ? 'False' : undefined;
  return choices.selected === 'lower' ? 'true' : 'True';
}

function renderQuestion(question: FilledQuestion, choices: Choices): string {
  const answers = question.answers.map((answer) => {
    const attributes = renderAttributes({ id: answer.id, selected: toSelected(answer, choices) });
    const text = choices.answerText === 'cdata' ? `<![CDATA[${answer.text}]]>` : escapeXml(answer.text);
    return `<answer${attributes}>${choices.answerText === 'absent' ? '' : text}</answer>`;
  });
  return `<question${renderAttributes({ id: question.id, type: question.type, text: question.text })}>${answers.join('')}</question>`;
}

function renderAttributes(attributes: Readonly<Record<string, string | undefined>>): string {
  const written = Object.entries(attributes).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return written.map(([name, value]) => ` ${name}="${escapeXml(value)}"`).join('');
}
