import type { Step } from "../kernel/step.ts";

/** What a group of lines is for, by the beginning of its lines; the first that fits counts. */
const HEADINGS: readonly (readonly [RegExp, string])[] = [
  [/^fou add/, "UDP ports on which the kernel takes tunnelled packets in"],
  [/^(link|address)/, "tunnel links: to each gateway, and one without a remote that serves every other peer"],
  [/^rule add pref 1800/, "link-local destinations stay on the link"],
  [/^rule add pref 1850/, "outer packets to gateways never meet the tunnel"],
  [/^rule add pref 1860/, "flows stay with the gateway that they began with"],
  [/^route replace .*table 118\d{3}/, "where the flows of each gateway go, and its dead end"],
  [/^rule add pref 1880/, "marked packets (replies to inbound flows) leave as they came"],
  [/^rule add pref 1990/, "what this host sends as itself, outer packets above all"],
  [/^rule add pref 2000 fwmark .* iif/, "answers to clients"],
  [/^rule add pref 2001 from/, "answers to probes"],
  [/^rule add pref 2002 oif/, "answers to clients, where the flowtable asks for their way"],
  [/^rule add pref 2003 fwmark .* iif/, "packets of clients"],
  [/^rule add pref 201[0-3] .*blackhole/, "all else on these ways"],
  [
    /^rule add pref 20[0-4]/,
    "private destinations: as without Egresses, unless a narrow one took them before",
  ],
  [/^rule add pref 2050/, "so do connected networks and specific routes"],
  [/^rule add pref 1890/, "probe addresses"],
  [/^rule add pref 190[01]/, "narrow destinations, and their dead ends"],
  [/^rule add pref 210[01]/, "wide destinations, and their dead ends"],
  [/^route replace local/, "probes of the tunnel are for this host"],
  [
    /^route replace (unreachable )?(192\.0\.0\.|100:0:0:1:)/,
    "the probe address of each Egress leads to its gateway",
  ],
  [/^route replace throw/, "never through a tunnel: in-cluster, excluded and link-local ranges"],
  [/^route replace/, "destinations, each with a dead end for when its link is gone"],
];

/** Steps as a person reads them. */
export function renderSteps(steps: readonly Step[]): string {
  return steps.map(renderStep).join("\n");
}

function renderStep(step: Step): string {
  if ("sysctls" in step) {
    const lines = Object.entries(step.sysctls).map(([path, value]) => `${path} = ${value}\n`);
    return `==== sysctls\n${lines.join("")}`;
  }
  if ("read" in step) return `==== read ${step.read.join(" ")}\n`;
  const input = step.input ?? "";
  return `==== ${[step.file, ...step.args].join(" ")}\n${step.file === "ip" ? withHeadings(input) : input}`;
}

function withHeadings(lines: string): string {
  let last: string | undefined;
  return lines
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const heading = HEADINGS.find(([beginning]) => beginning.test(line))?.[1];
      const above = heading !== last && heading !== undefined ? `# ${heading}\n` : "";
      last = heading;
      return `${above}${line}\n`;
    })
    .join("");
}
