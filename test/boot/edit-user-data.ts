import type { Machine } from "../fakes/maas/state/model.ts";

/**
 * Changes one part of the user data that the hub rendered, as a fault on the way to the host would. User data is a MIME message, whose parts are in
 * base64. `editUserData` throws when the function `edit` changes nothing.
 */
export function editUserData(machine: Machine, part: string, edit: (text: string) => string): void {
  const mime = Buffer.from(machine.userData ?? "", "base64").toString("utf8");
  const at = mime.indexOf(`filename="${part}"`);
  if (at < 0) throw new Error(`the user-data of ${machine.hostname} has no part ${part}`);
  const from = mime.slice(at).search(/\r?\n\r?\n/) + at;
  const start = from + (/^\r?\n\r?\n/.exec(mime.slice(from))?.[0].length ?? 0);
  const end = mime.indexOf("--", start);
  const before = Buffer.from(mime.slice(start, end), "base64").toString("utf8");
  const after = edit(before);
  if (after === before) throw new Error(`the change of ${part} changed nothing`);
  const body = (
    Buffer.from(after)
      .toString("base64")
      .match(/.{1,76}/g) ?? []
  ).join("\n");
  machine.userData = Buffer.from(`${mime.slice(0, start)}${body}\n${mime.slice(end)}`).toString("base64");
}
