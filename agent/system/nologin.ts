/** While the file /etc/nologin exists, only root can log in to the host (pam_nologin). */
export const NOLOGIN = "/etc/nologin";
export const NOLOGIN_START = "This host is being drained by Muster";
