import { partFile, shellPart } from "./part.ts";

/** Fetches, checks and runs the bundle that the site's infrastructure owns. Its failures are the site's. */
export const siteBootstrap = shellPart({
  name: "10-site-bootstrap.sh",
  owner: "site",
  body: partFile("site-bootstrap.sh"),
  values: ({ siteBootstrap: bundle, hostname }) =>
    bundle === undefined
      ? null
      : {
          BUNDLE_REF: bundle.ref,
          BUNDLE_URL: bundle.url,
          BUNDLE_SHA256: bundle.sha256,
          BUNDLE_VERSION: bundle.version ?? "",
          BUNDLE_TIMEOUT_SECONDS: bundle.timeoutSeconds,
          NODE_HOSTNAME: hostname,
        },
});
