import { createSocket } from "node:dgram";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { BookOfVisitors } from "./visitors.ts";

// usage: server.ts ADDRESS...
// The servers of a test cluster's internet, on each of the addresses:
//   9000/tcp  sends the address that it sees and a newline, then sends back what it gets
//   9000/udp  answers each datagram with the address that it sees and a newline
//      7/tcp  sends back what it gets, in full, however big
//      7/udp  sends back each datagram
//     80/tcp  GET / answers with the address that it sees; GET /seen?text=TEXT with the datagrams that held a text, as
//             [{source, destination, protocol, text, at}] (all of them without ?text); DELETE /seen forgets them
const WHOAMI_PORT = 9000;
const ECHO_PORT = 7;
const HTTP_PORT = 80;

const visitors = new BookOfVisitors();

function serveWhoami(address: string): void {
  createServer({ allowHalfOpen: true }, (socket) => {
    const source = socket.remoteAddress ?? "";
    visitors.add({ source, destination: address, protocol: "tcp", text: "" });
    socket.on("error", () => socket.destroy());
    socket.write(`${source}\n`);
    socket.pipe(socket);
  }).listen(WHOAMI_PORT, address);
  // A socket for each address: an answer from another one would belong to no flow.
  const datagrams = createSocket({ type: address.includes(":") ? "udp6" : "udp4", reuseAddr: true });
  datagrams.on("message", (message, sender) => {
    visitors.add({ source: sender.address, destination: address, protocol: "udp", text: message.toString() });
    datagrams.send(`${sender.address}\n`, sender.port, sender.address, () => undefined);
  });
  datagrams.bind(WHOAMI_PORT, address);
}

function serveEcho(address: string): void {
  createServer({ allowHalfOpen: true }, (socket) => {
    visitors.add({ source: socket.remoteAddress ?? "", destination: address, protocol: "tcp", text: "" });
    socket.on("error", () => socket.destroy());
    socket.pipe(socket);
  }).listen(ECHO_PORT, address);
  const datagrams = createSocket({ type: address.includes(":") ? "udp6" : "udp4", reuseAddr: true });
  datagrams.on("message", (message, sender) => {
    visitors.add({ source: sender.address, destination: address, protocol: "udp", text: message.toString() });
    datagrams.send(message, sender.port, sender.address, () => undefined);
  });
  datagrams.bind(ECHO_PORT, address);
}

function serveHttp(address: string): void {
  createHttpServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://internet");
    if (url.pathname === "/seen") {
      if (request.method === "DELETE") visitors.forget();
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify(visitors.with(url.searchParams.get("text") ?? "")));
      return;
    }
    const source = request.socket.remoteAddress ?? "";
    visitors.add({ source, destination: address, protocol: "http", text: url.pathname });
    response.end(`${source}\n`);
  }).listen(HTTP_PORT, address);
}

for (const address of process.argv.slice(2)) {
  serveWhoami(address);
  serveEcho(address);
  serveHttp(address);
}
serveHttp("127.0.0.1");
