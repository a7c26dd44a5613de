using BridgeSharp.Cli;

return CommandLine.Run(args);
