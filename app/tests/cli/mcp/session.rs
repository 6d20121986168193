//! A client of the Model Context Protocol that speaks JSON lines, and knows nothing of the crate that the server uses.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::server::{Server, carillon};

/// A session with `carillon mcp`.
pub struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: u64,
    /// The tools as they were listed, by name.
    pub tools: BTreeMap<String, Value>,
    /// The tools that answered without an error.
    pub used: BTreeSet<String>,
}

impl Session {
    /// A session that has been opened, with the token of the server's directory.
    pub fn open(server: &Server) -> Self {
        Self::open_as(server, None, &[])
    }

    /// The same with a token and further arguments.
    pub fn open_as(server: &Server, token: Option<&str>, arguments: &[&str]) -> Self {
        let mut session = Self::start(server, token, arguments);
        let capabilities = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let opened = session.request("initialize", capabilities);
        assert_eq!(opened["result"]["protocolVersion"], "2025-11-25", "{opened}");
        assert_eq!(opened["result"]["serverInfo"]["name"], "carillon");
        assert!(opened["result"]["instructions"].as_str().unwrap().contains("dry_run = false"));
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        let listed = session.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        session.tools = tools.map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool.clone())).collect();
        session
    }

    /// A session in which nothing has been said yet.
    pub fn start(server: &Server, token: Option<&str>, arguments: &[&str]) -> Self {
        let mut command = carillon(server.dir.path(), &[&["mcp"], arguments].concat());
        command.env("CARILLON_SERVER", &server.url);
        if let Some(token) = token {
            command.env("CARILLON_TOKEN", token);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, requests: 0, tools: BTreeMap::new(), used: BTreeSet::new() }
    }

    /// Sends a line.
    pub fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line, which must be a message of JSON-RPC.
    pub fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    /// Sends a request without waiting for its answer; the id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params}).to_string());
        self.requests
    }

    /// Sends a request; the whole message that answers it.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let message = self.receive();
        assert_eq!(message["id"], id, "{message}");
        message
    }

    /// Calls a tool; its structured answer, which must be as the tool's schema says.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let schema = |part: &str| jsonschema::validator_for(&self.tools[tool][part]).unwrap();
        let (takes, answers) = (schema("inputSchema"), schema("outputSchema"));
        assert!(takes.is_valid(&arguments), "{tool} takes no {arguments}");
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert_ne!(result["isError"], true, "{tool} {arguments}: {answer}");
        let structured = &result["structuredContent"];
        let faults: Vec<String> =
            answers.iter_errors(structured).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
        assert!(faults.is_empty(), "{tool} answers {structured}: {}", faults.join("; "));
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, *structured, "clients that read only text get the same");
        self.used.insert(tool.to_owned());
        structured.clone()
    }

    /// Calls a tool that must refuse; its sentence.
    pub fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer["result"]["isError"], true, "{tool} {arguments}: {answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Ends the session as clients do, by closing its input. Nothing but messages has gone to its output, and it ends well.
    pub fn close(mut self) {
        drop(self.input.take());
        let rest: Vec<String> = self.output.by_ref().lines().map(Result::unwrap).collect();
        assert!(rest.is_empty(), "{rest:?}");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Mostly it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
