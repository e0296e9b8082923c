import { GENERATORS as OF_TOOLS } from "@egress-nat/tools/generate/files";
import { sloDocument } from "../chaos/document.ts";
import { cniMatrix } from "../cni/document.ts";

/** What tools make of the product, and what is made of the cases that tests run and of what was measured: tools know no tests. */
export const GENERATORS = [...OF_TOOLS, cniMatrix, sloDocument];
