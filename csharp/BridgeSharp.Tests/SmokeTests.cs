using Xunit;

namespace BridgeSharp.Tests;

public sealed class SmokeTests
{
    [Fact]
    public void Test() => Assert.True(true);
}
