import ts from "typescript";

/**
 * What a package exports, as TypeScript declares it, without comments: in the order of the alphabet, and after that what
 * of its own the exports name without exporting it.
 *
 * @param entry its index.d.ts
 * @param scope the folder of the packages that count as its own
 * @param options of the compiler
 */
export function publicApi(
  entry: string,
  scope: string,
  options: ts.CompilerOptions,
): { exported: string; named: string } {
  const program = ts.createProgram([entry], options);
  const checker = program.getTypeChecker();
  const printer = ts.createPrinter({ removeComments: true });
  const resolve = (symbol: ts.Symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const declarationsOf = (symbol: ts.Symbol) =>
    (symbol.declarations ?? []).filter((declaration) =>
      declaration.getSourceFile().fileName.startsWith(scope),
    );

  /** Symbols of the package that declarations name: not members and parameters, which are declared in place. */
  const namedBy = (symbol: ts.Symbol): ts.Symbol[] => {
    const found: ts.Symbol[] = [];
    const visit = (node: ts.Node): void => {
      const named = ts.isIdentifier(node) ? checker.getSymbolAtLocation(node) : undefined;
      if (named !== undefined) found.push(resolve(named));
      ts.forEachChild(node, visit);
    };
    for (const declaration of declarationsOf(symbol)) visit(declaration);
    return found.filter((named) =>
      declarationsOf(named).some((node) => ts.isSourceFile(statementOf(node).parent)),
    );
  };

  const print = (symbols: Iterable<ts.Symbol>) =>
    Array.from(symbols)
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .flatMap((symbol) => declarationsOf(symbol))
      .map(statementOf)
      .map((node) => printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile()))
      .join("\n");

  const file = program.getSourceFile(entry);
  const module = file && checker.getSymbolAtLocation(file);
  const exported = new Set(module === undefined ? [] : checker.getExportsOfModule(module).map(resolve));
  const reached = new Set(exported);
  for (const symbol of reached) for (const named of namedBy(symbol)) reached.add(named);
  return { exported: print(exported), named: print([...reached].filter((symbol) => !exported.has(symbol))) };
}

function statementOf(declaration: ts.Declaration): ts.Node {
  return ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
}
