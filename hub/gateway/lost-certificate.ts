import type { X509Certificate } from "node:crypto";
import type { NodeId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { readLostTimes } from "../db/queries/database-restores.ts";
import { areTokensSince, markTokensUsed } from "../db/queries/enrollment-tokens.ts";
import { keepFoundCertificate, readOtherCertificates } from "../db/queries/node-certificates.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { readIdentityBlock } from "../db/queries/node-identity-bars.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import type { Db, InTx } from "../db/tx.ts";
import { lostVerdict } from "../node/lost-certificate.ts";
import { authorityOf, type CertificateAuthority, keySha256, NODE_BACKDATE_MS } from "./certificate-authority.ts";
import { serialOf } from "./x509.ts";

interface LostDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly ca: CertificateAuthority;
  readonly log: Log;
}

/** How much the clocks of hub and database may differ. */
const SKEW_MS = 5 * 60_000;

/**
 * Stores a node's certificate that the hub issued after the backup of which the database was restored. `takeLostCertificate` returns false if the
 * certificate stays unknown. The caller has checked that the hub's CA issued the certificate for the node.
 */
export async function takeLostCertificate(
  { db, inTx, ca, log }: LostDependencies,
  nodeId: NodeId,
  certificate: X509Certificate,
): Promise<boolean> {
  const issuedAt = new Date(certificate.validFromDate.getTime() + NODE_BACKDATE_MS);
  const lost = (await readLostTimes(db)).find(
    ({ from, until }) =>
      issuedAt.getTime() > from.getTime() - SKEW_MS && issuedAt.getTime() < until.getTime() + SKEW_MS,
  );
  if (lost === undefined) return false;
  const byCaInForce = authorityOf(ca.issuerPem)(certificate);
  const publicKeySha256 = keySha256(certificate.publicKey.export({ type: "spki", format: "der" }));
  const serial = serialOf(certificate.serialNumber);
  const verdict = await inTx(async (tx) => {
    const node = await lockNode(tx, nodeId);
    if (node === null || node.status === "deleted") return "unknown";
    const { generation } = node;
    const others = await readOtherCertificates(tx, nodeId, generation, issuedAt);
    const found = lostVerdict({
      inLostTime: true,
      byCaInForce,
      generationSince: await areTokensSince(tx, nodeId, generation, lost.until),
      revoked: others.revoked || (await readIdentityBlock(tx, nodeId))?.generation === generation,
      laterInUse: others.laterInUse,
    });
    if (found === "unknown") return found;
    const [notBefore, notAfter] = [certificate.validFromDate, certificate.validToDate];
    await keepFoundCertificate(
      tx,
      { serial, nodeId, generation, publicKeySha256, notBefore, notAfter, issuedAt },
      found === "replaced",
    );
    await markTokensUsed(tx, nodeId, generation, publicKeySha256);
    await recordNodeEvent(tx, {
      nodeId,
      type: "certificate_renewed",
      owner: "agent",
      message:
        found === "accepted"
          ? "The database was restored from an older backup, and the host's newer certificate is accepted"
          : "The database was restored from an older backup, and this certificate of that time was replaced since",
      details: { serial, lost_time: found },
    });
    await wakeWorkflows(tx, [waitKey.node(nodeId)]);
    return found;
  });
  if (verdict !== "unknown")
    log.info("a certificate from before the restore is known again", { node_id: nodeId, serial, verdict });
  return verdict !== "unknown";
}
