import { expect, it } from "vitest";
import { addressFault } from "./webhook-address.ts";

it.each([
  "http://169.254.169.254/latest/meta-data",
  "http://169.254.0.1:8080/",
  "http://2852039166/",
  "http://[fe80::1]/",
  "http://[::ffff:169.254.169.254]/",
  "http://[64:ff9b::a9fe:a9fe]/",
  "http://[64:ff9b:1::a9fe:a9fe]/",
  "http://[2002:a9fe:a9fe::1]/",
  "http://[fd00:ec2::254]/latest/meta-data",
  "http://100.100.100.200/",
  "http://0.0.0.0:8080/",
  "http://[::]:8080/",
  "http://239.0.0.1/",
  "http://[ff02::1]/",
  "http://receiver.example:22/",
  "https://receiver.example:25/",
])("refuses %s", (url) => expect(addressFault(new URL(url))).not.toBeNull());

it.each([
  "https://receiver.example/hook",
  "http://receiver.example:80/",
  "http://receiver.example:443/",
  "http://127.0.0.1:8080/",
  "http://[::1]:1024/",
  "http://10.0.0.5/",
  "http://[::ffff:10.0.0.5]/",
  "http://[fd12::5]/",
])("accepts %s", (url) => expect(addressFault(new URL(url))).toBeNull());
