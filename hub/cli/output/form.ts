export const FORMS = ["table", "wide", "json", "jsonl", "yaml", "name", "csv"] as const;
export type Form = (typeof FORMS)[number];
