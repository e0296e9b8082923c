import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { configurationInUse, insertPlugin, listOfOne, removePlugin } from "./conflist.ts";

const ENTRY = { type: "egress-nat", capabilities: { "io.kubernetes.cri.pod-annotations": true } };

const CALICO = `{
  "name": "k8s-pod-network",
  "cniVersion": "0.3.1",
  "plugins": [
    { "type": "calico", "mtu": 1480, "huge": 12345678901234567890, "policy": {"type": "k8s"} },
    {
      "type": "portmap",
      "snat": true,
      "capabilities": {"portMappings": true}
    }
  ]
}
`;

describe("inserting the plugin", () => {
  it("appends it to the list, and leaves every other byte as it was", () => {
    expect(insertPlugin(CALICO, "10-calico.conflist")).toBe(
      CALICO.replace(
        `true}
    }
  ]`,
        `true}
    },
    {"type":"egress-nat","capabilities":{"io.kubernetes.cri.pod-annotations":true}}
  ]`,
      ),
    );
  });

  it("changes nothing where the plugin is there", () => {
    const inserted = insertPlugin(CALICO, "x");
    expect(insertPlugin(inserted, "x")).toBe(inserted);
  });

  it("leaves it where it is when another program has added a plugin behind it", () => {
    const text = `{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"bridge"},${JSON.stringify(ENTRY)},{"type":"istio-cni"}]}`;
    expect(insertPlugin(text, "x")).toBe(text);
  });

  it.each([
    ["an entry of an older version", `{"type":"bridge"},{"type":"egress-nat"}`],
    ["an entry twice", `{"type":"bridge"},${JSON.stringify(ENTRY)},${JSON.stringify(ENTRY)}`],
    ["an entry before all others", `{"type":"egress-nat","x":1}, {"type":"bridge"}`],
  ])("replaces %s by one at the end", (_, plugins) => {
    const text = `{"cniVersion":"1.0.0","name":"n","plugins":[${plugins}]}`;
    expect(JSON.parse(insertPlugin(text, "x")).plugins).toEqual([{ type: "bridge" }, ENTRY]);
  });

  it.each([
    ["", /not JSON/],
    ["{", /not JSON/],
    ["[]", /expected object/],
    [`{"cniVersion":"1.0.0","name":"n"}`, /plugins/],
    [`{"cniVersion":"1.0.0","name":"n","plugins":[]}`, /plugins/],
    [`{"cniVersion":"1.0.0","name":"n","plugins":[{}]}`, /type/],
    [`{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"egress-nat"}]}`, /needs one before it/],
    [`{"name":"n","plugins":[{"type":"bridge"}]}`, /cniVersion/],
    [`{"cniVersion":"0.2.0","name":"n","plugins":[{"type":"bridge"}]}`, /0\.2\.0 is not one of 0\.3\.0/],
    [`{"cniVersion":"2.0.0","name":"n","plugins":[{"type":"bridge"}]}`, /2\.0\.0 is not one of/],
    [`{"cniVersions":["9.9.9"],"name":"n","plugins":[{"type":"bridge"}]}`, /9\.9\.9 is not one of/],
    [
      `{"cniVersion":"0.2.0","cniVersions":["0.1.0"],"name":"n","plugins":[{"type":"bridge"}]}`,
      /0\.2\.0, 0\.1/,
    ],
    [
      `{"cniVersion":"1.0.0","cniVersions":["newest"],"name":"n","plugins":[{"type":"x"}]}`,
      /not a version: .*newest/,
    ],
  ])("refuses %s, and says why", (text, message) => {
    expect(() => insertPlugin(text, "10-x.conflist")).toThrow(message);
    expect(() => insertPlugin(text, "10-x.conflist")).toThrow(/10-x\.conflist/);
  });
});

describe("networks whose configuration is of version 0.3.0", () => {
  it.each([
    [
      "Antrea",
      `{"cniVersion":"0.3.0","name":"antrea","plugins":[{"type":"antrea","ipam":{"type":"host-local"}},{"type":"portmap","capabilities":{"portMappings":true}},{"type":"bandwidth","capabilities":{"bandwidth":true}}]}`,
    ],
    [
      "Azure CNI",
      `{"cniVersion":"0.3.0","name":"azure","adapterName":"","plugins":[{"type":"azure-vnet","mode":"transparent","ipsToRouteViaHost":["169.254.20.10"],"ipam":{"type":"azure-vnet-ipam"}},{"type":"portmap","capabilities":{"portMappings":true},"snat":true}]}`,
    ],
    [
      "kube-router",
      `{"cniVersion":"0.3.0","name":"mynet","plugins":[{"name":"kubernetes","type":"bridge","bridge":"kube-bridge","isDefaultGateway":true,"ipam":{"type":"host-local"}}]}`,
    ],
  ])("are joined: %s", (_, text) => {
    expect(JSON.parse(insertPlugin(text, "10-x.conflist")).plugins.at(-1)).toEqual(ENTRY);
  });
});

describe("a list that names several versions", () => {
  it.each([
    ["the highest of them", `"cniVersion":"0.3.1","cniVersions":["0.4.0","1.0.0"]`],
    ["one that is not the newest", `"cniVersion":"1.0.0","cniVersions":["9.9.9"]`],
    ["one in spite of a newer cniVersion", `"cniVersion":"9.9.9","cniVersions":["1.1.0"]`],
    ["one in spite of older ones", `"cniVersion":"0.2.0","cniVersions":["0.1.0","0.4.0"]`],
    ["one without cniVersion", `"cniVersions":["1.0.0"]`],
  ])("is joined where a runtime runs it with %s that it knows", (_, versions) => {
    const text = `{${versions},"name":"n","plugins":[{"type":"bridge"}]}`;
    expect(JSON.parse(insertPlugin(text, "x")).plugins).toEqual([{ type: "bridge" }, ENTRY]);
  });
});

describe("removing the plugin", () => {
  it("does nothing where it is not", () => {
    expect(removePlugin(CALICO, "x")).toBe(CALICO);
  });

  it("takes it out between others", () => {
    const text = `{"cniVersion":"1.0.0","name":"n","plugins":[ {"type":"bridge"} , ${JSON.stringify(ENTRY)} , {"type":"x"} ]}`;
    expect(removePlugin(text, "x")).toBe(
      `{"cniVersion":"1.0.0","name":"n","plugins":[ {"type":"bridge"} , {"type":"x"} ]}`,
    );
  });

  it("gives back what was there before, byte for byte, whatever the list looks like", () => {
    const space = fc.stringMatching(/^[ \t\r\n]{0,4}$/);
    const plugin = fc.record({
      type: fc.string().filter((type) => type !== "egress-nat"),
      options: fc.jsonValue(),
    });
    fc.assert(
      fc.property(
        fc.array(plugin, { minLength: 1 }),
        fc.jsonValue(),
        fc.jsonValue(),
        space,
        (plugins, a, b, s) => {
          const list = plugins.map((entry) => `${s}${JSON.stringify(entry, null, s)}${s}`).join(",");
          const text = `${s}{"cniVersion":${s}"1.0.0","x\\"":${JSON.stringify(a)},"plugins":[1],${s}"name":"n","plugins"${s}:[${list}]${s},"y":${JSON.stringify(b)}}`;
          const inserted = insertPlugin(text, "x");
          expect(JSON.parse(inserted)).toEqual({
            ...JSON.parse(text),
            plugins: [...JSON.parse(text).plugins, ENTRY],
          });
          expect(removePlugin(inserted, "x")).toBe(text);
        },
      ),
    );
  });
});

describe("the configuration in use", () => {
  it("is the first that a runtime would read", () => {
    const files = [
      "99-loopback.conf",
      ".10-a.conflist.77",
      "README",
      "20-b.conf",
      "10-a.conflist",
      "10-a.conf.bak",
    ];
    expect(configurationInUse(files, "/etc/cni/net.d")).toBe("10-a.conflist");
  });

  it("is missing on a node without a network", () => {
    expect(() => configurationInUse(["README"], "/etc/cni/net.d")).toThrow(
      /install the cluster's network first/,
    );
  });
});

it("makes a list of a single configuration as the runtime does", () => {
  const text = `{"cniVersion":"0.4.0","name":"n","type":"ptp","ipam":{"type":"host-local"}}\n`;
  expect(JSON.parse(insertPlugin(listOfOne(text, "10-n.conf"), "10-n.conflist"))).toEqual({
    cniVersion: "0.4.0",
    name: "n",
    plugins: [JSON.parse(text), ENTRY],
  });
});
