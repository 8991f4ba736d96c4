import { openTaskSigner } from "../../hub/gateway/task-signer.ts";
import { MemorySecrets } from "./memory-secrets.ts";

/** Signs sanitization records with an order key that only the test knows. */
export const { countersign } = await openTaskSigner(new MemorySecrets());
