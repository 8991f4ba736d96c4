import { partFile, shellPart } from "./part.ts";

/**
 * Renders the first-boot script that fetches, verifies and runs the site's own bootstrap script or archive of scripts. The site, not Muster, has to
 * act on a failure of the site's bootstrap scripts.
 */
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
