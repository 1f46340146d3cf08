enum TokenKind {
  Name,
  Number,
  Sign,
}

interface Token {
  kind: TokenKind;
  text: string;
  position: { line: number; column: number };
}

class Lexer {
  private offset = 0;
  line = 1;
  column = 1;

  constructor(readonly source: string) {}

  peek(): string {
    return this.source.charAt(this.offset);
  }

  advance(): string {
    const letter = this.peek();
    this.offset += 1;
    if (letter === "\n") {
      this.line += 1;
      this.column = 1;
    } else {
      this.column += 1;
    }
    return letter;
  }

  isDone(): boolean {
    return this.offset >= this.source.length;
  }
}

abstract class Expression {
  abstract evaluate(scope: Map<string, number>): number;
  children(): Expression[] {
    return [];
  }
}

class Constant extends Expression {
  constructor(readonly value: number) {
    super();
  }
  evaluate(): number {
    return this.value;
  }
}

class Sum extends Expression {
  constructor(readonly left: Expression, readonly right: Expression) {
    super();
  }
  evaluate(scope: Map<string, number>): number {
    return this.left.evaluate(scope) + this.right.evaluate(scope);
  }
  children(): Expression[] {
    return [this.left, this.right];
  }
}

function readTokens(lexer: Lexer): Token[] {
  const tokens: Token[] = [];
  while (!lexer.isDone()) {
    const letter = lexer.peek();
    const position = { line: lexer.line, column: lexer.column };
    if (letter.trim().length === 0) {
      lexer.advance();
      continue;
    }
    tokens.push({ kind: TokenKind.Sign, text: lexer.advance(), position });
  }
  return tokens;
}

function countNodes(expression: Expression): number {
  let count = 1;
  for (const child of expression.children()) {
    count += countNodes(child);
  }
  return count;
}

const lexer = new Lexer("a + b");
const tokens = readTokens(lexer);
const names = tokens.filter((token) => token.kind === TokenKind.Name);
const joined = names.map((token) => token.text).join(" ");
const sum = new Sum(new Constant(1), new Constant(2));
const result = sum.evaluate(new Map()).toFixed(1);
const nodes = countNodes(sum.left) + sum.right.children().length;
const where = tokens[0].position.column + lexer.source.indexOf("b");
