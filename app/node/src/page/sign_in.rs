//! Signing in and out.
//!
//! A link that signs in is used by a button and not by opening it. Previews, virus scanners and browsers that load ahead open links too,
//! and would use it up. The button's page also names the token, so that nobody is signed in as somebody else without seeing it.

use maud::{Markup, html};
use warp::http::StatusCode;
use warp::http::header::{HeaderValue, SET_COOKIE};
use warp::reply::Response;

use crate::config::Role;
use crate::http::problem::Problem;
use crate::http::request::access::Caller;
use crate::http::request::session::{COOKIE_NAME, SIGNED_IN_FOR};
use crate::page::answer::see_other;
use crate::page::layout::{Shown, bare, copyable};
use crate::page::links::local_path;
use crate::page::params::Params;
use crate::page::visit::{Fault, Request};

/// Leads somebody who has not signed in to the form.
pub(crate) fn ask(request: &Request) -> Response {
    let asked = format!("{}{}", request.path, request.params.with("fragment", None).to_query());
    let next = Some(asked.as_str()).filter(|path| *path != "/" && request.method.is_safe());
    let params = Params::default().with("next", next.and_then(local_path));
    see_other(&format!("/sign-in{}", params.to_query()))
}

/// The form.
pub(crate) async fn form(request: &Request) -> Result<Shown, Fault> {
    let next = next(&request.params).to_owned();
    if request.session().await?.is_some() {
        return Ok(Shown::Response(see_other(&next)));
    }
    // A link from another site comes without the cookie, because that is strict. Asked for once more from here, it comes along.
    let from_elsewhere = request.headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
    let again = from_elsewhere.then(|| request.links().with("/sign-in", &request.params));
    let body = token_form(request, &next, None);
    Ok(Shown::Response(bare(request, StatusCode::OK, "Sign in", &body, again.as_deref())))
}

/// Takes the token.
pub(crate) async fn sign_in(request: &mut Request) -> Result<Shown, Fault> {
    let form = request.fields().await?;
    let next = next(&form).to_owned();
    match request.api.tokens.bearer_of(form.get("token").unwrap_or_default().trim()) {
        Some(caller) => Ok(Shown::Response(signed_in(request, &caller, &next).await?)),
        None => {
            let body = token_form(request, &next, Some("This token is not known here."));
            Ok(Shown::Response(bare(request, StatusCode::UNAUTHORIZED, "Sign in", &body, None)))
        }
    }
}

/// Ends the session of this browser.
pub(crate) async fn sign_out(request: &mut Request) -> Result<Shown, Fault> {
    request.form(Role::Viewer).await?;
    let mut response = see_other("/sign-in");
    set_cookie(request, &mut response, "", 0);
    Ok(Shown::Response(response))
}

/// The page of a link, with the button that uses it.
pub(crate) async fn link_form(request: &Request, secret: &str) -> Result<Shown, Fault> {
    let Some(caller) = request.api.sessions.of_link(&request.api.tokens, secret).await? else {
        return Ok(spent(request));
    };
    let body = html! {
        h1 { "Sign in" }
        p { "This link signs you in as " strong { (caller.name()) } ", " (caller.role().as_str()) ", for 12 hours." }
        form method="post" { button.primary autofocus { "Sign in as " (caller.name()) } }
    };
    Ok(Shown::Response(bare(request, StatusCode::OK, "Sign in", &body, None)))
}

/// Uses a link.
pub(crate) async fn use_link(request: &Request, secret: &str) -> Result<Shown, Fault> {
    match request.api.sessions.use_link(&request.api.tokens, secret).await? {
        Some(caller) => Ok(Shown::Response(signed_in(request, &caller, "/").await?)),
        None => Ok(spent(request)),
    }
}

/// The page of a link that signs nobody in any more, and what to do.
fn spent(request: &Request) -> Shown {
    let links = request.links();
    let body = html! {
        h1 { "This link is spent" }
        p.sentence.medium { "It was used already, or it is older than a minute. A link signs in once." }
        p { "Make another one where the command line reaches this server:" }
        p { (copyable("carillon open")) }
        p { "Or " a href=(links.to("/sign-in")) { "sign in with a token" } ". Who has signed in goes " a href=(links.to("/")) { "to the overview" } "." }
    };
    Shown::Response(bare(request, StatusCode::GONE, "This link is spent", &body, None))
}

fn token_form(request: &Request, next: &str, fault: Option<&str>) -> Markup {
    html! {
        h1 { "Sign in" }
        form.stack method="post" action=(request.links().to("/sign-in")) {
            input type="hidden" name="next" value=(next);
            label for="token" { "Token" }
            @if let Some(fault) = fault { p #token-fault .fault role="alert" { (fault) } }
            input #token name="token" type="password" required autofocus autocomplete="current-password"
                aria-describedby=[fault.map(|_| "token-fault")];
            button.primary { "Sign in" }
        }
        p.note { "On the machine of the server this opens the page without a token to type:" }
        p { (copyable("carillon open")) }
    }
}

/// Where to go after signing in.
fn next(params: &Params) -> &str {
    params.get("next").and_then(local_path).unwrap_or("/")
}

async fn signed_in(request: &Request, caller: &Caller, next: &str) -> Result<Response, Problem> {
    let value = request.api.sessions.begin(caller).await?;
    let mut response = see_other(next);
    set_cookie(request, &mut response, &value, SIGNED_IN_FOR.as_secs());
    Ok(response)
}

fn set_cookie(request: &Request, response: &mut Response, value: &str, max_age_secs: u64) {
    let links = request.links();
    let (path, secure) = (links.cookie_path(), if request.is_over_tls() { "; Secure" } else { "" });
    let cookie =
        format!("{COOKIE_NAME}={value}; Path={path}; Max-Age={max_age_secs}; HttpOnly; SameSite=Strict{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}
