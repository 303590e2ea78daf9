// Drives the server with a TypeScript SDK, as most hosts do, and prints what came back as one JSON document.
// usage: node ts_client.mjs v1|v2 NODE_MODULES COMMAND [ARGS…]   with the calls as JSON in $CALLS
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const [sdk, modules, command, ...args] = process.argv.slice(2);
const require = createRequire(path.join(modules, "x.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

let Client, StdioClientTransport;
if (sdk === "v1") {
  ({ Client } = await load("@modelcontextprotocol/sdk/client/index.js"));
  ({ StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js"));
} else {
  const client = await load("@modelcontextprotocol/client");
  Client = client.Client;
  StdioClientTransport = client.StdioClientTransport ?? (await load("@modelcontextprotocol/client/stdio")).StdioClientTransport;
}
const options = sdk === "v2" ? { versionNegotiation: { mode: process.env.ERA ?? "legacy" } } : {};
const client = new Client({ name: "foreign", version: "1" }, options);
const transport = new StdioClientTransport({ command, args, stderr: "pipe", env: { ...process.env } });
await client.connect(transport);
const out = { tools: (await client.listTools()).tools.map((tool) => tool.name), calls: [] };
for (const [name, input] of JSON.parse(process.env.CALLS)) {
  try {
    // Version 1 validates structured content against the output schema, of errors too.
    const result = await client.callTool({ name, arguments: input });
    out.calls.push({ isError: result.isError ?? false, structured: result.structuredContent, text: result.content[0]?.text });
  } catch (error) {
    out.calls.push({ thrown: String(error) });
  }
}
await client.close();
console.log(JSON.stringify(out));
process.exit(0);
