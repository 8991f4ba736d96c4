import { counter } from "./family.ts";

export const apiRequests = counter({
  name: "muster_api_requests_total",
  help: "Requests to the admin listener, by method and class of the answer's status.",
  labels: {
    method: ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"],
    status: ["2xx", "3xx", "4xx", "5xx"],
  },
});

export const loginsRefused = counter({
  name: "muster_api_logins_refused_total",
  help: "Requests to the admin API whose token the hub refused.",
  labels: {},
});
