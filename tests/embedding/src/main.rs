//! Embeds the host: adds a plugin, calls its tool, and lets a model call it.
//!
//! Usage: `OPENAI_API_KEY=… cofferdam-embedding WORKSPACE PLUGIN TOOL BASE-URL`

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use cofferdam::model::{ModelSettings, connect};
use cofferdam::{HelperProcesses, Host};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let helpers = HelperProcesses::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workspace, plugin, tool, base_url] = &arguments[..] else {
        return Err("usage: cofferdam-embedding WORKSPACE PLUGIN TOOL BASE-URL".into());
    };
    let host = Host::builder(workspace).helper_processes(helpers).plugin(plugin).build()?;
    let mut settings = ModelSettings::from_env(|name| std::env::var(name).ok());
    settings.base_url = Some(base_url.clone());
    let model = connect(&"openai:gpt-5".parse()?, &settings)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let result = host.call_tool(tool, &json!({"path": "one call"})).await?;
        println!("result: {}", result.text());
        let outcome = host.session(model).request("Call the tool, please.").await?;
        println!("answer: {}", outcome.text().unwrap_or_default());
        Ok(())
    })
}
