"""A mail server for tests: aiosmtpd, which tells each mail that it takes as a line of JSON.

    mail_server.py plain|starttls|smtps CERTIFICATE_AND_KEY [USER:PASSWORD]

Its first line is its port. Receivers that begin with "unknown" do not exist, those with "full" take nothing for now.
"""

import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("unknown"):
            return "550 5.1.1 no such user"
        if address.startswith("full"):
            return "452 4.2.2 mailbox is full"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if b"refuse this text" in envelope.content:
            return "554 5.7.1 looks like spam"
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "mail": envelope.content.decode(),
            "tls": server.transport.get_extra_info("sslcontext") is not None,
            "user": (session.auth_data.login.decode() if session.auth_data else None),
            "hello": session.host_name,
        }
        print(json.dumps(mail), flush=True)
        return "250 taken"


async def serve(kind, certificate, login):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    def authenticate(server, session, envelope, mechanism, data):
        good = f"{data.login.decode()}:{data.password.decode()}" == login
        return AuthResult(success=good, handled=good, auth_data=data)

    def protocol():
        return SMTP(
            Handler(),
            hostname="mail.example.org",
            tls_context=context if kind == "starttls" else None,
            require_starttls=kind == "starttls",
            authenticator=authenticate,
            auth_required=login is not None,
            auth_require_tls=False,
        )

    loop = asyncio.get_running_loop()
    implicit = context if kind == "smtps" else None
    server = await loop.create_server(protocol, "127.0.0.1", 0, ssl=implicit)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(serve(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None))
