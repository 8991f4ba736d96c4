import { partFile, shellPart } from "./part.ts";

/**
 * Renders the first-boot script that creates an account for operators, who can then log in by SSH without the agent. The deploy-user part contains
 * only the password's hash, not the password.
 */
export const deployUser = shellPart({
  name: "60-deploy-user.sh",
  owner: "muster",
  body: partFile("deploy-user.sh"),
  values: ({ deployUser: user }) =>
    user === undefined
      ? null
      : {
          USER_NAME: user.name,
          PASSWORD_HASH: user.passwordHash,
          AUTHORIZED_KEYS: user.sshAuthorizedKeys.join("\n"),
          USER_SUDO: user.sudo,
        },
});
