-- BMC addresses are compared as texts: an IPv6 one that was written otherwise was another one (requests are put into this spelling since).
update "node_maas_state" set "ipmi_ip" = host("ipmi_ip"::inet) where "ipmi_ip" like '%:%';--> statement-breakpoint
update "node_onboardings" set "ipmi_ip" = host("ipmi_ip"::inet) where "ipmi_ip" like '%:%';
