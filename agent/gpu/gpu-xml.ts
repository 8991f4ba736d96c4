import { parseXml, XmlElement } from "@rgrove/parse-xml";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { messageOf } from "../message-of.ts";

/** The longest output of `nvidia-smi -q -x`, in characters, that the agent reads; eight GPUs print about 200 kB. */
const MOST_CHARACTERS = 8_000_000;

export class UnreadableXml extends Error {
  override readonly name = "UnreadableXml";
}

export interface XmlNode {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlNode[];
  readonly text: string;
}

const nodeOf = (element: XmlElement): XmlNode => ({
  name: element.name,
  attributes: element.attributes,
  children: element.children.filter((child) => child instanceof XmlElement).map(nodeOf),
  text: element.text.trim(),
});

/** Returns the root element of an XML document. Throws `UnreadableXml` if the text is not a whole XML document, for example if its end is missing. */
export function parseDocument(text: string): XmlNode {
  if (text.length > MOST_CHARACTERS) throw new UnreadableXml(`The XML document has ${text.length} characters.`);
  let root: XmlElement | null;
  try {
    root = parseXml(text).root;
  } catch (error) {
    // After its first line, the error message of the XML parser repeats a line of the document, which may contain a secret that the tool printed.
    const [why = ""] = messageOf(error).split("\n", 1);
    throw new UnreadableXml(withoutCredentials(why).slice(0, 300));
  }
  if (root === null) throw new UnreadableXml("The XML document has no root element.");
  return nodeOf(root);
}

export function textAt(node: XmlNode, path: string): string | null {
  let here: XmlNode | undefined = node;
  for (const name of path.split("/")) here = here?.children.find((child) => child.name === name);
  return here === undefined ? null : here.text;
}

export const childrenNamed = (node: XmlNode, name: string): readonly XmlNode[] =>
  node.children.filter((child) => child.name === name);
