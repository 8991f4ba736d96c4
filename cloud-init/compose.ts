import { UserDataInput, type UserDataValues } from "./input.ts";
import { type MimePart, mimeMultipart } from "./mime.ts";
import { PARTS } from "./parts/index.ts";

/** The largest size of user-data, in bytes. User-data over 1 MiB points to a mistake, although cloud-init and MAAS allow more (decision M4). */
export const MAX_USER_DATA_BYTES = 1024 * 1024;

export type UserData = {
  readonly mime: string;
  /** The user-data as the value of `user_data` in MAAS's deploy call. */
  readonly base64: string;
  readonly bytes: number;
  /** `bytes` is the size of a user-data part before MIME encoding. */
  readonly parts: readonly { readonly name: string; readonly contentType: string; readonly bytes: number }[];
};

export type UserDataError =
  | {
      readonly code: "invalid_input";
      readonly message: string;
      /** `issues` names the invalid fields of the input but not their values, because a value may be a secret. */
      readonly issues: readonly { readonly path: string; readonly message: string }[];
    }
  | {
      readonly code: "user_data_too_large";
      readonly message: string;
      readonly bytes: number;
      readonly limit: number;
    };

export type ComposeResult =
  | { readonly ok: true; readonly userData: UserData }
  | { readonly ok: false; readonly error: UserDataError };

const invalid = (issues: readonly { path: string; message: string }[]): ComposeResult => ({
  ok: false,
  error: {
    code: "invalid_input",
    message: `The first-boot payload was not rendered: ${issues
      .map((issue) => `${issue.path} ${issue.message}`)
      .join("; ")}. Correct the site, profile or host and render again.`,
    issues,
  },
});

const sizeOf = (text: string): number => Buffer.byteLength(text, "utf8");

const largest = (parts: readonly MimePart[]): string =>
  parts.reduce((a, b) => (sizeOf(b.content) > sizeOf(a.content) ? b : a)).name;

/**
 * `composeUserData` renders the user-data of one host (lifecycle 9, decision M4). `composeUserData` is a pure function: the same input gives the same
 * bytes.
 */
export const composeUserData = (values: UserDataValues): ComposeResult => {
  const parsed = UserDataInput.safeParse(values);
  if (!parsed.success) {
    return invalid(
      parsed.error.issues.map((issue) => ({ path: issue.path.join(".") || "input", message: issue.message })),
    );
  }
  const parts = PARTS.flatMap((part): MimePart[] => {
    const content = part.render(parsed.data);
    return content === null ? [] : [{ name: part.name, contentType: part.contentType, content }];
  });
  const mime = mimeMultipart(parts);
  const bytes = sizeOf(mime);
  if (bytes > MAX_USER_DATA_BYTES) {
    const message = `The first-boot payload is ${bytes} bytes, over the limit of ${MAX_USER_DATA_BYTES}; its largest part is ${largest(parts)}. Make the CA bundle or the list of SSH keys smaller.`;
    return { ok: false, error: { code: "user_data_too_large", message, bytes, limit: MAX_USER_DATA_BYTES } };
  }
  return {
    ok: true,
    userData: {
      mime,
      base64: Buffer.from(mime, "utf8").toString("base64"),
      bytes,
      parts: parts.map((part) => ({
        name: part.name,
        contentType: part.contentType,
        bytes: sizeOf(part.content),
      })),
    },
  };
};
