import { API_ROLES } from "../../../shared/api/roles.ts";
import { VALIDATION_RESULTS } from "../../../shared/api/sanitization.ts";
import { boolean, check, index, pgTable, text, uuid } from "../orm.ts";
import { createdAt, oneOf } from "./columns.ts";

/**
 * The findings of people who validated a sanitization record (decision C1). Triggers of the table `sanitization_validations` refuse to change or
 * remove a row, whoever asks. No column is a foreign key, because nobody removes a validation or its sanitization record, and both outlive the node.
 */
export const sanitizationValidations = pgTable(
  "sanitization_validations",
  {
    id: uuid("id").primaryKey(),
    recordId: uuid("record_id").notNull(),
    /** The SHA-256 of the sanitization record's text, so that the validation is about exactly this text. */
    recordSha256: text("record_sha256").notNull(),
    validatedBy: text("validated_by").notNull(),
    role: text("role", { enum: API_ROLES }).notNull(),
    /**
     * True if only one person can hold the credential of the request; false for a credential that several people or anybody may hold, for example the
     * token of a machine.
     */
    isPerson: boolean("is_person").notNull(),
    /** The job title in the validator's own words; null if the validator named none. */
    title: text("title"),
    result: text("result", { enum: VALIDATION_RESULTS }).notNull(),
    reason: text("reason").notNull(),
    createdAt: createdAt(),
  },
  (t) => [
    check("sanitization_validations_role_check", oneOf("role", API_ROLES)),
    check("sanitization_validations_result_check", oneOf("result", VALIDATION_RESULTS)),
    index("sanitization_validations_record_idx").on(t.recordId, t.createdAt),
  ],
);
export type SanitizationValidationRow = typeof sanitizationValidations.$inferSelect;
