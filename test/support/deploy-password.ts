/** Contains characters that a shell interprets, so that a host shows whether the password is quoted. */
export const DEPLOY_PASSWORD = "correct horse 'battery' $taple";
