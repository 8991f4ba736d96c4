/** The deploy user's password in tests contains characters that a shell interprets, so that a boot shows whether all scripts quote the password. */
export const DEPLOY_PASSWORD = "correct horse 'battery' $taple";
