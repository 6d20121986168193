//! Reading output while its run lives.

use std::io::{BufRead, BufReader, Read};

use crate::server::Server;

/// A follower: the lines of the body, as they come.
pub fn follow(server: &Server, id: &str) -> BufReader<impl Read + use<>> {
    let url = format!("{}/v1/runs/{id}/output?follow=true", server.url());
    let answer = server.patient_agent().get(url).header("Authorization", format!("Bearer {}", server.token())).call();
    let answer = answer.expect("the server answers");
    assert_eq!(answer.status(), 200);
    BufReader::new(answer.into_body().into_reader())
}

/// The next line; what there is without a line's end at the end of the stream.
pub fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("the stream goes on");
    line
}

/// All that is still to come.
pub fn rest(reader: &mut impl Read) -> String {
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("the stream ends in good order");
    rest
}
