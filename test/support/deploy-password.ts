/** With what a shell would act on, so that a host shows whether it is quoted. */
export const DEPLOY_PASSWORD = "correct horse 'battery' $taple";
