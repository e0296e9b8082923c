import { z } from "zod";
import type { Kubectl } from "./kubectl.ts";

const Events = z.object({ items: z.array(z.object({ message: z.string() })) });

/** The messages of the events about a pod. */
export async function podEvents(
  kubectl: Kubectl,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<string[]> {
  const selector = `--field-selector=involvedObject.kind=Pod,involvedObject.name=${name}`;
  const { items } = await kubectl.get(Events, "events", "-n", namespace, selector);
  return items.map(({ message }) => message);
}
