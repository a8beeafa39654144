// Finds every text that the product passes to `X.query(...)`. It evaluates the source without running it: literals, templates, constants
// of any module, branches, and functions that return a text. A parameter takes the values of all calls.
import { globSync } from 'node:fs';
import { join, relative } from 'node:path';
import {
  type CallExpression,
  type Expression,
  isArrayLiteralExpression,
  isArrowFunction,
  isAsExpression,
  isBinaryExpression,
  isBlock,
  isCallExpression,
  isConditionalExpression,
  isElementAccessExpression,
  isForOfStatement,
  isFunctionDeclaration,
  isIdentifier,
  isNoSubstitutionTemplateLiteral,
  isNumericLiteral,
  isObjectLiteralExpression,
  isParameterDeclaration,
  isParenthesizedExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isReturnStatement,
  isSpreadElement,
  isStringLiteral,
  isTemplateExpression,
  isVariableDeclaration,
  type Node,
  NodeFlags,
  type SourceFile,
  SyntaxKind,
} from 'typescript/unstable/ast';
import { API, type Checker, SymbolFlags, type Type, TypeFlags } from 'typescript/unstable/sync';

/** A call, and the texts that it may pass; null where the source alone does not determine them. */
export interface QueryCall {
  /** File and line. */
  readonly place: string;
  /** The source text of the first argument. */
  readonly written: string;
  readonly texts: readonly string[] | null;
  /** The columns of its row type, each with its type without null. Empty where it has no row type. */
  readonly columns: ReadonlyMap<string, string>;
}

const root = join(import.meta.dirname, '../../..');

/** Returns the calls in these files. */
export function loadQueryCalls(pattern: string): QueryCall[] {
  const config = join(root, 'sql-texts.tsconfig.json');
  const files = globSync(pattern, { cwd: root }).toSorted();
  // The options of tsconfig.json for these files alone take a fifth of the time.
  const text = JSON.stringify({ extends: './tsconfig.json', include: [], files });
  const api = new API({ cwd: root, fs: { readFile: (path) => (path === config ? text : undefined) } });
  try {
    const [project] = api.updateSnapshot({ openProject: config }).getProjects();
    if (!project) throw new Error('The compiler opened no project.');
    const sources = files.map((file) => project.program.getSourceFile(join(root, file)) as SourceFile);
    const reader = createReader(project.checker, sources);
    return sources.flatMap((source) => findCalls(source, 'query').flatMap(reader));
  } finally {
    api.close();
  }
}

/** Calls of a function or method with this name. */
function findCalls(node: Node, name: string): CallExpression[] {
  const found: CallExpression[] = [];
  const visit = (one: Node): undefined => {
    if (isCallExpression(one)) {
      const { expression } = one;
      const called = isPropertyAccessExpression(expression) ? expression.name : expression;
      if (isIdentifier(called) && called.text === name) found.push(one);
    }
    one.forEachChild(visit);
  };
  visit(node);
  return found;
}

class NotStatic extends Error {}

/** The known values of parameters, by the place of their declarations. */
type Scope = ReadonlyMap<string, Bound>;
/** An expression with its scope. */
interface Bound {
  readonly node: Expression;
  readonly scope: Scope;
}

const noScope: Scope = new Map();
const toPlace = (node: Node) => `${node.getSourceFile().fileName}:${node.pos}`;
const toDistinct = (texts: readonly string[]) => [...new Set(texts)];
const concat = (left: readonly string[], right: readonly string[]) =>
  toDistinct(left.flatMap((start) => right.map((end) => `${start}${end}`)));

function createReader(checker: Checker, sources: readonly SourceFile[]): (call: CallExpression) => QueryCall[] {
  function findDeclaration(name: Node): Node {
    let symbol = checker.getSymbolAtLocation(name);
    if (symbol && (symbol.flags & SymbolFlags.Alias) !== 0) symbol = checker.getAliasedSymbol(symbol);
    const declaration = symbol?.valueDeclaration?.resolve();
    if (!declaration) throw new NotStatic();
    return declaration;
  }

  /** The texts that an expression may have. */
  function read(given: Node, scope: Scope): readonly string[] {
    const node = unwrap(given);
    if (isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node) || isNumericLiteral(node)) return [node.text];
    // In `x ?? 'ALL'`, a null x adds no text.
    if (node.kind === SyntaxKind.NullKeyword) return [];
    if (isTemplateExpression(node)) {
      return [...node.templateSpans].reduce(
        (texts, span) => concat(concat(texts, read(span.expression, scope)), [span.literal.text]),
        [node.head.text] as readonly string[],
      );
    }
    if (isConditionalExpression(node)) return [...read(node.whenTrue, scope), ...read(node.whenFalse, scope)];
    if (isBinaryExpression(node)) return readBinary(node.left, node.operatorToken.kind, node.right, scope);
    if (isCallExpression(node)) return readCall(node, scope);
    if (isIdentifier(node) || isPropertyAccessExpression(node) || isElementAccessExpression(node)) {
      try {
        return toDistinct(resolve(node, scope).flatMap((one) => read(one.node, one.scope)));
      } catch (error) {
        if (!(error instanceof NotStatic)) throw error;
        return readType(node);
      }
    }
    throw new NotStatic();
  }

  function readBinary(left: Node, operator: SyntaxKind, right: Node, scope: Scope): readonly string[] {
    if (operator === SyntaxKind.PlusToken) return concat(read(left, scope), read(right, scope));
    if (operator === SyntaxKind.AsteriskToken) {
      return read(left, scope).flatMap((one) => read(right, scope).map((other) => String(Number(one) * Number(other))));
    }
    if (operator === SyntaxKind.QuestionQuestionToken) return [...read(left, scope), ...read(right, scope)];
    throw new NotStatic();
  }

  function readCall(call: CallExpression, scope: Scope): readonly string[] {
    const { expression } = call;
    if (isPropertyAccessExpression(expression) && expression.name.text === 'join') {
      const [separator] = call.arguments;
      const between = separator ? read(separator, scope) : [','];
      return readElements(expression.expression, scope).reduce(
        (texts, element, at) => concat(at === 0 ? texts : concat(texts, between), element()),
        [''] as readonly string[],
      );
    }
    return callFunction(
      expression,
      [...call.arguments].map((node) => ({ node, scope })),
      scope,
    );
  }

  /** The elements of an array literal, each as a function that reads it. */
  function readElements(given: Node, scope: Scope): (() => readonly string[])[] {
    const node = unwrap(given);
    if (isArrayLiteralExpression(node)) {
      return [...node.elements].flatMap((element) =>
        isSpreadElement(element) ? readElements(element.expression, scope) : [() => read(element, scope)],
      );
    }
    if (isCallExpression(node) && isPropertyAccessExpression(node.expression) && node.expression.name.text === 'map') {
      const [mapper] = node.arguments;
      if (!mapper) throw new NotStatic();
      return listElements(node.expression.expression, scope).map(
        (element) => () => callFunction(mapper, [element], scope),
      );
    }
    if (isIdentifier(node)) return resolve(node, scope).flatMap((one) => readElements(one.node, one.scope));
    throw new NotStatic();
  }

  function listElements(given: Node, scope: Scope): Bound[] {
    const node = unwrap(given);
    if (isArrayLiteralExpression(node)) return [...node.elements].map((element) => ({ node: element, scope }));
    if (isIdentifier(node)) return resolve(node, scope).flatMap((one) => listElements(one.node, one.scope));
    throw new NotStatic();
  }

  /** The texts that a function returns for these arguments. */
  function callFunction(called: Node, given: readonly Bound[], scope: Scope): readonly string[] {
    const node = unwrap(called);
    if (isIdentifier(node)) {
      const declaration = findDeclaration(node);
      if (isFunctionDeclaration(declaration)) return callBody(declaration, declaration.parameters, given, noScope);
      if (isVariableDeclaration(declaration) && declaration.initializer) {
        return callFunction(declaration.initializer, given, scope);
      }
    }
    if (isArrowFunction(node)) return callBody(node, node.parameters, given, scope);
    throw new NotStatic();
  }

  function callBody(
    { body }: { readonly body?: Node | undefined },
    parameters: Iterable<Node>,
    given: readonly Bound[],
    outer: Scope,
  ): readonly string[] {
    const scope = new Map(outer);
    for (const [at, parameter] of [...parameters].entries()) {
      const otherwise = isParameterDeclaration(parameter) ? parameter.initializer : undefined;
      const bound = given[at] ?? (otherwise && { node: otherwise, scope: outer });
      if (bound) scope.set(toPlace(parameter), bound);
    }
    if (!body) throw new NotStatic();
    if (!isBlock(body)) return read(body, scope);
    const returned: Node[] = [];
    const visit = (one: Node): undefined => {
      if (isReturnStatement(one) && one.expression) returned.push(one.expression);
      else if (!isArrowFunction(one)) one.forEachChild(visit);
    };
    visit(body);
    if (returned.length === 0) throw new NotStatic();
    return toDistinct(returned.flatMap((one) => read(one, scope)));
  }

  /** The expressions that may be the value of a name or a member. */
  function resolve(node: Node, scope: Scope): Bound[] {
    if (isIdentifier(node)) return resolveName(findDeclaration(node), scope);
    if (isPropertyAccessExpression(node)) {
      return listMembers(node.expression, scope).flatMap(({ name, value }) => (name === node.name.text ? [value] : []));
    }
    // The index is known only at run time: every member is possible.
    if (isElementAccessExpression(node)) return listMembers(node.expression, scope).map(({ value }) => value);
    throw new NotStatic();
  }

  function resolveName(declaration: Node, scope: Scope): Bound[] {
    if (isParameterDeclaration(declaration)) {
      const bound = scope.get(toPlace(declaration));
      return bound ? [bound] : listArguments(declaration);
    }
    if (!isVariableDeclaration(declaration)) throw new NotStatic();
    if ((declaration.parent.flags & NodeFlags.Const) === 0) throw new NotStatic();
    if (declaration.initializer) return [{ node: declaration.initializer, scope }];
    const loop = declaration.parent.parent;
    if (isForOfStatement(loop)) return listElements(loop.expression, scope);
    throw new NotStatic();
  }

  function listMembers(object: Node, scope: Scope): { name: string; value: Bound }[] {
    const node = unwrap(object);
    if (isObjectLiteralExpression(node)) {
      return [...node.properties].map((property) => {
        if (!isPropertyAssignment(property) || !isIdentifier(property.name)) throw new NotStatic();
        return { name: property.name.text, value: { node: property.initializer, scope } };
      });
    }
    if (isIdentifier(node)) return resolve(node, scope).flatMap((one) => listMembers(one.node, one.scope));
    throw new NotStatic();
  }

  /** The arguments that callers in all modules pass for a parameter. */
  function listArguments(parameter: Node): Bound[] {
    const owner = parameter.parent;
    const named = isArrowFunction(owner) && isVariableDeclaration(owner.parent) ? owner.parent : owner;
    if (!(isFunctionDeclaration(named) || isVariableDeclaration(named))) throw new NotStatic();
    const { name } = named;
    if (!name || !isIdentifier(name) || !(isFunctionDeclaration(owner) || isArrowFunction(owner)))
      throw new NotStatic();
    const at = [...owner.parameters].findIndex((one) => one === parameter || toPlace(one) === toPlace(parameter));
    const calls = sources
      .flatMap((source) => findCalls(source, name.text))
      .filter((call) => isIdentifier(call.expression) && toPlace(findDeclaration(call.expression)) === toPlace(named));
    const otherwise = isParameterDeclaration(parameter) ? parameter.initializer : undefined;
    const given = calls.flatMap((call) => call.arguments[at] ?? otherwise ?? []);
    if (given.length === 0) throw new NotStatic();
    return given.map((node) => ({ node, scope: noScope }));
  }

  /** Where only the type is known and it is a number, 1 stands for any number. */
  function readType(node: Node): readonly string[] {
    const type = checker.getTypeAtLocation(node);
    if (type && (type.flags & (TypeFlags.NumberLike | TypeFlags.BigIntLike)) !== 0) return ['1'];
    throw new NotStatic();
  }

  function readColumns({ typeArguments }: CallExpression): ReadonlyMap<string, string> {
    const [row] = typeArguments ?? [];
    const type = row && checker.getTypeFromTypeNode(row);
    const members = type ? checker.getPropertiesOfType(type) : [];
    return new Map(members.map((member) => [member.name, readBareType(checker.getTypeOfSymbol(member))]));
  }

  /** A type without null; a union of string literals becomes `string`. */
  function readBareType(type: Type | undefined): string {
    const present = type && checker.getNonNullableType(type);
    const base = present && checker.getBaseTypeOfLiteralType(present);
    return base ? checker.typeToString(base) : 'unknown';
  }

  return (call) => {
    const [argument] = call.arguments;
    if (!argument) return [];
    const source = call.getSourceFile();
    const line = source.text.slice(0, call.arguments.pos).split('\n').length;
    const place = `${relative(root, source.fileName)}:${line}`;
    const described = { place, written: argument.getText(), columns: readColumns(call) };
    try {
      const texts = toDistinct(read(argument, noScope));
      return [{ ...described, texts: texts.length > 0 ? texts : null }];
    } catch (error) {
      if (!(error instanceof NotStatic)) throw error;
      return [{ ...described, texts: null }];
    }
  };
}

function unwrap(node: Node): Expression {
  return isParenthesizedExpression(node) || isAsExpression(node) ? unwrap(node.expression) : (node as Expression);
}
