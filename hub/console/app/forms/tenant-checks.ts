import { type Check, present } from "./checks.ts";

const CONTROL = /\p{Cc}/u;

/** A check for a text of one line, for which the API allows at most `most` characters. */
const line =
  (most: number): Check =>
  (value) => {
    if (value.trim().length > most) return `is longer than ${most} characters`;
    return CONTROL.test(value) ? "has control characters" : undefined;
  };

const MOST_TENANT = 128;
const MOST_NAME = 256;
const MOST_DESCRIPTION = 1_024;

export const tenant: Check = (value) => present(value) ?? line(MOST_TENANT)(value);
export const keyName: Check = (value) => present(value) ?? line(MOST_NAME)(value);
export const description: Check = line(MOST_DESCRIPTION);

/** The largest number of SSH keys of an account, and therefore of a key group. */
export const MOST_KEYS_OF_AN_ACCOUNT = 32;
