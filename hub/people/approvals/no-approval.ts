import { ApiError } from "../../../shared/api/errors.ts";

/** The answer is the same for an approval of a foreign site and for one that does not exist, so that nobody learns which ids exist. */
export const noApproval = (id: string): ApiError =>
  new ApiError("not_found", `There is no approval ${id}. List the approvals that you may see (list-approvals).`);
