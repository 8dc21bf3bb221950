// Starts `isograd lsp` for Python files and restarts it when its setting changes.

import * as vscode from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions } from "vscode-languageclient/node";

const SETTING = "isograd.command";

let client: LanguageClient | undefined;
// Starts and stops follow one another, so that two settings changes never leave two servers.
let queue: Promise<void> = Promise.resolve();

export function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("isograd.restart", () => enqueue(restart)),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(SETTING)) {
        void enqueue(restart);
      }
    }),
  );
  return enqueue(start);
}

export function deactivate(): Promise<void> {
  return enqueue(stop);
}

function enqueue(work: () => Promise<void>): Promise<void> {
  queue = queue.then(work, work);
  return queue;
}

async function restart(): Promise<void> {
  await stop();
  await start();
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  if (running?.needsStop()) {
    await running.stop();
  }
  await running?.dispose();
}

async function start(): Promise<void> {
  const [command, ...args] = vscode.workspace.getConfiguration().get<string[]>(SETTING, ["isograd", "lsp"]);
  if (!command) {
    void vscode.window.showErrorMessage(`isograd: the setting ${SETTING} is empty.`);
    return;
  }
  const server: ServerOptions = { command, args };
  const options: LanguageClientOptions = {
    documentSelector: [
      { scheme: "file", language: "python" },
      { scheme: "untitled", language: "python" },
    ],
  };
  client = new LanguageClient("isograd", "isograd", server, options);
  try {
    await client.start();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    void vscode.window.showErrorMessage(
      `isograd: ${command} did not start (${reason}). Install it with pip install 'isograd[lsp]', ` +
        `or name it in the setting ${SETTING}.`,
    );
  }
}
