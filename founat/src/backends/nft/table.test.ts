import { expect, test } from "vitest";
import { chains } from "./table.ts";

test("chains are read as nft has them, with what the comments above say", () => {
  const script = `
    # Of two
    # lines.
    chain hooked {
      type filter hook input priority filter; policy accept;
      # for both
      iif "lo" accept
      iif "eth0" udp dport { 1, 2 } accept

      # for one
      drop
    }
    chain other {
      # whatever it is
      return
    }
  `;
  expect(chains(script)).toEqual([
    {
      name: "hooked",
      hook: "type filter hook input priority filter; policy accept;",
      comment: "Of two lines.",
      rules: [
        { text: 'iif "lo" accept', comment: "for both" },
        { text: 'iif "eth0" udp dport { 1, 2 } accept', comment: "for both" },
        { text: "drop", comment: "for one" },
      ],
    },
    { name: "other", comment: "", rules: [{ text: "return", comment: "whatever it is" }] },
  ]);
});
