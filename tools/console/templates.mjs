// Holds every template of a module against its packed form: htm has to make the same of both. Reads pairs of texts, prints those that differ.
import { readFileSync } from "node:fs";
import htm from "htm";
import ts from "typescript";

const built = htm.bind((tag, props, ...children) => ({ tag, props, children }));

/** What htm makes of all templates of a module, whatever their values are. */
function templates(text) {
  const found = [];
  let tag = "html";
  const visit = (node) => {
    if (ts.isImportSpecifier(node) && node.propertyName?.text === "html") {
      tag = node.name.text;
    }
    if (ts.isTaggedTemplateExpression(node) && node.tag.getText() === tag) {
      const { template } = node;
      const strings = ts.isNoSubstitutionTemplateLiteral(template) ? [template.text]
        : [template.head.text, ...template.templateSpans.map((span) => span.literal.text)];
      const statics = Object.assign([...strings], { raw: strings });
      found.push(JSON.stringify(built(statics, ...strings.slice(1).map(() => "value"))));
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile("module.js", text, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS));
  return found.sort();
}

let count = 0;
for (const [name, source, packed] of JSON.parse(readFileSync(0, "utf8"))) {
  const [want, got] = [templates(source), templates(packed)];
  count += want.length;
  const other = want.findIndex((one, i) => one !== got[i]);
  if (want.length !== got.length || other >= 0) {
    console.log(`${name}: ${want.length} templates, packed ${got.length}; ${want[other]} is packed as ${got[other]}`);
  }
}
console.log(`${count} templates`);
