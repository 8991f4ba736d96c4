import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";

export type RecordAnswer = Answer<"getSanitizationRecord">;
export type Content = RecordAnswer["record"];

export const recordOf = (id: string) =>
  question([`records/${id}`], ["record", id], (signal) =>
    read(api.GET("/api/v1/admin/sanitization-records/{id}", { params: { path: { id } }, signal })),
  );
