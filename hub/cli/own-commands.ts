import type { OwnCommand } from "./program/verbs.ts";
import { shippedOperations } from "./table/shipped.ts";

/** Runs a command with a parser and a help text of its own, and returns its exit status. */
export async function runOwn(name: OwnCommand, argv: readonly string[], help: boolean): Promise<number> {
  switch (name) {
    case "login":
    case "logout": {
      const { runLogin } = await import("./login.ts");
      await runLogin(argv);
      return 0;
    }
    case "audit": {
      const { AUDIT_VERIFY_HELP, auditVerify } = await import("./audit-verify.ts");
      if (help) process.stdout.write(AUDIT_VERIFY_HELP);
      else await auditVerify(argv, shippedOperations());
      return 0;
    }
    case "verify-record": {
      const { VERIFY_RECORD_HELP, verifyRecordFiles } = await import("./verify-record.ts");
      if (!help) return verifyRecordFiles(argv.slice(1));
      process.stdout.write(VERIFY_RECORD_HELP);
      return 0;
    }
    case "diagnostics": {
      const { DIAGNOSTICS_HELP, writeDiagnostics } = await import("./diagnostics.ts");
      if (help) process.stdout.write(DIAGNOSTICS_HELP);
      else await writeDiagnostics(argv.toSpliced(argv.indexOf(name), 1), shippedOperations());
      return 0;
    }
  }
}
