using Xunit;

namespace BridgeSharp.Tests.Spec;

/// <summary>Tests that share what a process has once: the default generator, the threads and the count of live tensors.</summary>
[CollectionDefinition(nameof(Serial), DisableParallelization = true)]
public sealed class Serial;
