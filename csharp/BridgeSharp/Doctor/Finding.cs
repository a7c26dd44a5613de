namespace BridgeSharp.Doctor;

/// <summary>One thing that the doctor looked at.</summary>
/// <param name="name">What it is.</param>
/// <param name="state"><c>ok</c>, <c>note</c> for what works but should be known, <c>missing</c> for what is needed.</param>
/// <param name="value">What was found.</param>
/// <param name="remedy">How to mend it, a command where there is one.</param>
public sealed record Finding(string name, string state, string value, string remedy = "");
