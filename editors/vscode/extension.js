// Starts `pnetc lsp` for .pnet files.
const { workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

exports.activate = () => {
  const command = workspace.getConfiguration('pnet').get('path');
  client = new LanguageClient('pnet', 'pnet', { command, args: ['lsp'] }, {
    documentSelector: [{ language: 'pnet' }],
    synchronize: { fileEvents: workspace.createFileSystemWatcher('**/*.pnet') },
  });
  return client.start();
};

exports.deactivate = () => client && client.stop();
