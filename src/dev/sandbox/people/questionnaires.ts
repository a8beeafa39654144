// Screening questionnaires and people's answers. Pure: a job always has the same questions, a person always gives the same answers.
// Does not know how a screen is rendered.

import type { FilledAnswer, FilledScreen } from './plan.ts';
import type { Draw } from './random.ts';

/** Spec: question.type. */
export const questionTypes = [
  'MultipleChoiceOneAnswer',
  'MultipleChoiceManyAnswers',
  'Text',
  'True/False',
  'URLQuestion',
] as const;

/** The questions of an advertiser, without answers. */
export interface Questionnaire {
  readonly id: string;
  readonly name: string;
  readonly questions: readonly BankQuestion[];
}

interface BankQuestion {
  readonly type: (typeof questionTypes)[number];
  readonly text: string;
  /** The offered answers; for Text and URLQuestion, what people typically write. */
  readonly answers: readonly string[];
  /** The offered answer that is required to pass. */
  readonly required?: string;
}

/** Questionnaires for one job: none, one, or several versions over time. */
export function inventQuestionnaires(draw: Draw, jobNumber: number, jobTitle: string): Questionnaire[] {
  const versions = draw.pick([0, 0, 1, 1, 2, 3]);
  return Array.from({ length: versions }, (_, version) => ({
    id: String(40_000 + jobNumber * 10 + version),
    name: version === 0 ? jobTitle : `${jobTitle} (${version + 1})`,
    questions: chooseQuestions(draw),
  }));
}

/** One person's answers to a questionnaire; successful when every required answer was chosen. */
export function answerQuestionnaire(questionnaire: Questionnaire, draw: Draw): FilledScreen {
  let successful = true;
  const questions = questionnaire.questions.map((asked, index) => {
    const id = String(Number(questionnaire.id) * 100 + index + 1);
    const answers = answerQuestion(asked, id, draw);
    const missed = asked.required !== undefined && !answers.some((one) => one.selected && one.text === asked.required);
    if (missed) successful = false;
    return { id, type: asked.type, text: asked.text, answers };
  });
  return { id: questionnaire.id, name: questionnaire.name, successful, questions };
}

function answerQuestion(asked: BankQuestion, questionId: string, draw: Draw): FilledAnswer[] {
  if (asked.type === 'Text' || asked.type === 'URLQuestion') {
    return [{ id: `${questionId}1`, text: draw.pick(asked.answers), selected: true }];
  }
  const many = asked.type === 'MultipleChoiceManyAnswers';
  const preferred = asked.required !== undefined && draw.perMille(850) ? asked.answers.indexOf(asked.required) : -1;
  const chosen = preferred >= 0 ? preferred : draw.below(asked.answers.length);
  return asked.answers.map((text, index) => ({
    id: `${questionId}${index + 1}`,
    text,
    selected: index === chosen || (many && draw.perMille(350)),
  }));
}

function chooseQuestions(draw: Draw): BankQuestion[] {
  const start = draw.below(bank.length);
  // A step that is coprime to the bank's length picks no question twice.
  const step = draw.pick([1, 5, 7, 11]);
  return Array.from(
    { length: 3 + draw.below(5) },
    (_, index) => bank[(start + index * step) % bank.length] as BankQuestion,
  );
}

const bank: readonly BankQuestion[] = [
  {
    type: 'MultipleChoiceOneAnswer',
    text: 'Which of the following statements best describes your right to work in Australia?',
    answers: [
      "I'm an Australian citizen",
      "I'm a permanent resident",
      'I have a visa with no restrictions',
      'I require sponsorship',
    ],
  },
  { type: 'True/False', text: 'I hold a current driver licence.', answers: ['True', 'False'], required: 'True' },
  {
    type: 'MultipleChoiceManyAnswers',
    text: 'Which of these licences and checks do you hold?',
    answers: ['Working with children', 'First aid', 'Forklift (LF)', 'White card', 'None of these'],
  },
  {
    type: 'Text',
    text: 'Why would you like to work with us?',
    answers: [
      'My sister works on the same floor & told me how you treat people.',
      'It is close to home, and the roster suits a parent.',
      'I want to go back to <hands-on> work after years of meetings.',
      'Your apprentices stay. That says enough.',
    ],
  },
  {
    type: 'URLQuestion',
    text: 'Link to your portfolio or profile',
    answers: [
      'https://portfolio.example.com/work?id=7&lang=en',
      'https://people.example.org/~me',
      'www.example.net/profile',
    ],
  },
  {
    type: 'MultipleChoiceOneAnswer',
    text: 'How many years of experience do you have in a similar role?',
    answers: ['No experience', 'Less than 1 year', '1 to 3 years', 'More than 3 years'],
  },
  { type: 'True/False', text: 'I am willing to work on weekends.', answers: ['True', 'False'] },
  {
    type: 'MultipleChoiceManyAnswers',
    text: 'On which days can you work?',
    answers: ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'],
  },
  {
    type: 'Text',
    text: 'What notice must you give?',
    answers: ['4 weeks', '2', '0412 is not a number of weeks', 'None, I can start now'],
  },
  {
    type: 'MultipleChoiceOneAnswer',
    text: 'Have you had your vaccinations for this kind of work?',
    answers: ['Yes', 'No'],
    required: 'Yes',
  },
  {
    type: 'Text',
    text: 'What salary do you expect?',
    answers: ['1e5', '85000', '$90k + super', 'About 007 above the award'],
  },
  {
    type: 'MultipleChoiceManyAnswers',
    text: 'Which languages do you speak at work?',
    answers: ['English', 'Tiếng Việt', 'العربية', '中文', 'Ελληνικά'],
  },
];
