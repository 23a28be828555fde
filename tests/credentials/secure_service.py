"""What stands between a program with credentials and the local service: a token server, and a TLS front that checks each call's token."""

import base64
import http.server
import json
import threading
import time
import urllib.parse
from concurrent import futures

import grpc
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

import canary


class TokenServer:
    """POST /token on loopback. Its n-th token is canary.TOKEN_PREFIX + n. `script` holds what the next requests meet: (status, body), "drop", or seconds of delay."""

    def __init__(self, lifetime=3600):
        self.lifetime = lifetime
        self.script = []
        self.always = None
        self.requests = []  # the forms, as dictionaries
        self.issued = 0
        self.lock = threading.Lock()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                owner._serve(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self.server.server_port}/token"

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join(20)
        self.server.server_close()

    def _serve(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"])).decode()
        with self.lock:
            self.requests.append(dict(urllib.parse.parse_qsl(body)))
            step = self.always if self.always is not None else self.script.pop(0) if self.script else None
        if step == "drop":
            handler.close_connection = True
            return
        if isinstance(step, (int, float)):
            time.sleep(step)
            step = None
        status, answer = step if step else self._judge(self.requests[-1])
        # What a careless server would do: it tells the client what the client has sent.
        answer = answer.replace("ECHO", body)
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer.encode())

    def _judge(self, form):
        good = form["refresh_token"] == canary.REFRESH_TOKEN if form["grant_type"] == "refresh_token" else self._is_signed(form["assertion"])
        if not good:
            return 400, json.dumps({"error": "invalid_grant", "error_description": "wrong"})
        with self.lock:
            self.issued += 1
            return 200, json.dumps({"access_token": f"{canary.TOKEN_PREFIX}{self.issued}", "expires_in": self.lifetime, "token_type": "Bearer"})

    def _is_signed(self, assertion):
        message, _, signature = assertion.rpartition(".")
        try:
            canary.key().public_key().verify(_decode(signature), message.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
        claims = json.loads(_decode(message.partition(".")[2]))
        return claims["aud"] == self.uri and claims["iat"] <= time.time() + 1 < claims["exp"] <= claims["iat"] + 3600


def _decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class SecureFront(grpc.GenericRpcHandler):
    """TLS before a plaintext server: calls pass when `check(token, method, messages so far)` answers nothing, and end with (code, text) when it does."""

    def __init__(self, target, check=None):
        self.check = check or (lambda token, method, messages: None)
        self.calls = []  # (token, method)
        self.projects = []  # whose quota each call uses; None where it does not say
        self.connections = set()
        self.lock = threading.Lock()
        unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.insecure_channel(target, options=unlimited)
        self.server = grpc.server(futures.ThreadPoolExecutor(32), options=unlimited)
        self.server.add_generic_rpc_handlers((self,))
        credentials = grpc.ssl_server_credentials([(canary.key_pem().encode(), canary.certificate_pem().encode())])
        self.endpoint = f"https://127.0.0.1:{self.server.add_secure_port('127.0.0.1:0', credentials)}"

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait(20)
        self.channel.close()

    def service(self, details):
        method = details.method
        streams = method.endswith(("/ReadRows", "/AppendRows"))
        return grpc.unary_stream_rpc_method_handler(lambda request, context: self._stream(method, request, context)) if streams else \
            grpc.unary_unary_rpc_method_handler(lambda request, context: self._unary(method, request, context))

    def _token(self, method, context):
        metadata = dict(context.invocation_metadata())
        token = metadata.get("authorization", "").removeprefix("Bearer ")
        with self.lock:
            self.projects.append(metadata.get("x-goog-user-project"))
            self.connections.add(context.peer())
            self.calls.append((token, method.rpartition("/")[2]))
        return token

    def _ask(self, token, method, messages, context):
        refusal = self.check(token, method.rpartition("/")[2], messages)
        if refusal:
            context.abort(*refusal)

    def _metadata(self, context):
        return [(key, value) for key, value in context.invocation_metadata() if key.startswith("x-goog-")]

    def _unary(self, method, request, context):
        self._ask(self._token(method, context), method, 0, context)
        try:
            return self.channel.unary_unary(method)(request, metadata=self._metadata(context), timeout=60)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def _stream(self, method, request, context):
        token = self._token(method, context)
        self._ask(token, method, 0, context)
        call = self.channel.unary_stream(method)(request, metadata=self._metadata(context), timeout=120)
        context.add_callback(call.cancel)
        try:
            for messages, answer in enumerate(call, 1):
                yield answer
                self._ask(token, method, messages, context)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def tokens(self):
        """The numbers of the tokens of all calls, in order; None where a call had another one or none."""
        return [int(token.removeprefix(canary.TOKEN_PREFIX)) if token.startswith(canary.TOKEN_PREFIX) else None for token, _ in self.calls]
