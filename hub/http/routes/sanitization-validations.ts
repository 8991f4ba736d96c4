import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { SanitizationValidation, SanitizationValidationCreate } from "../../../shared/api/sanitization.ts";
import { lockSanitizationChain, readSanitizationRecord } from "../../db/queries/sanitization-records.ts";
import { addValidation, readValidations } from "../../db/queries/sanitization-validations.ts";
import type { SanitizationValidationRow } from "../../db/schema/index.ts";
import { identitiesOf, mayBeAnybody } from "../../people/approvals/identities.ts";
import { writeRoute } from "../route.ts";

/**
 * The largest number of validations of one sanitization record. The hub keeps each validation of a sanitization record for ever, so a limit on their
 * number stops a faulty program that writes validations without end.
 */
const MOST_VALIDATIONS = 20;

export const toValidation = (row: SanitizationValidationRow): z.input<typeof SanitizationValidation> => ({
  id: row.id,
  record_id: row.recordId,
  record_sha256: row.recordSha256,
  validated_by: row.validatedBy,
  role: row.role,
  is_person: row.isPerson,
  title: row.title,
  result: row.result,
  reason: row.reason,
  validated_at: row.createdAt.toISOString(),
});

const validate = writeRoute({
  operationId: "validateSanitizationRecord",
  method: "POST",
  path: "/api/v1/admin/sanitization-records/{id}/validations",
  tag: "sanitization",
  summary: "Say that you accept or reject a sanitization record, with your title; a validation is kept for ever",
  permission: "write",
  right: "operate_nodes",
  place: { of: "record", param: "id" },
  params: z.strictObject({ id: z.uuid() }),
  body: SanitizationValidationCreate,
  status: 201,
  response: SanitizationValidation,
  write: async ({ params, body, actor }, tx) => {
    const record = await readSanitizationRecord(tx, params.id);
    if (record === null) throw new ApiError("not_found", `There is no sanitization record ${params.id}.`);
    await lockSanitizationChain(tx, record.nodeId);
    if ((await readValidations(tx, params.id)).length >= MOST_VALIDATIONS)
      throw new ApiError(
        "conflict",
        `Sanitization record ${params.id} has ${MOST_VALIDATIONS} validations, and the hub keeps no more of one record.`,
      );
    const holders = await identitiesOf(tx, actor);
    const added = await addValidation(tx, {
      id: randomUUID(),
      recordId: record.recordId,
      recordSha256: record.recordSha256,
      validatedBy: actor.name,
      role: actor.role,
      // If two persons have held a token, the hub cannot tell which of them validated the sanitization record with it.
      isPerson: holders.length === 1 && !mayBeAnybody(holders),
      title: body.title ?? null,
      result: body.result,
      reason: body.reason,
    });
    const { id, record_sha256, title, result } = toValidation(added);
    const details = { validation_id: id, record_sha256, title, result };
    return {
      body: toValidation(added),
      audit: { target: `sanitization-records/${params.id}`, reason: body.reason, details },
    };
  },
});

export const sanitizationValidationRoutes = [validate];
