/** The commands of the hub's program. */
export const USAGE = `Usage: hub                                      serves hosts and operators
       hub backup --to FOLDER                   makes a backup of database and sealed secrets in a new folder below FOLDER
       hub restore --from BACKUP [--replace] [--without-holds]
                                                loads a backup; --replace first removes what the database has now;
                                                --without-holds lets nodes get new tenants at once, and lets operations go on
       hub migrate                              brings the database to this version, for hubs whose role may not change tables
       hub copy-secrets --to vault|sealed_file  copies every secret from the other store to this one

From a checkout: npm run hub -- copy-secrets --to vault
Settings come from the environment; docs/settings.md lists them and explains how to move from one store to the other. docs/operate.md explains
backups.
`;
