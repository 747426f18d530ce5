"""An MCP server over HTTPS. Arguments: the file with the certificate and the key."""

import http.server
import json
import ssl
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply(405, None)

    def do_DELETE(self):
        self.reply(200, None)

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        message = json.loads(self.rfile.read(length))
        method = message.get("method")
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "tls", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "encrypted"}]},
        }
        if "id" not in message:
            self.reply(202, None)
        elif method in results:
            self.reply(200, {"result": results[method]}, message["id"])
        else:
            self.reply(200, {"error": {"code": -32601, "message": "unknown"}}, message["id"])

    def reply(self, status, answer, id=None):
        body = b""
        if answer is not None:
            body = json.dumps({"jsonrpc": "2.0", "id": id, **answer}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
