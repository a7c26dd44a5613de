using System.Text;
using BridgeSharp.Doctor;
using BridgeSharp.Parity;
using TorchSharp;
using Xunit;

namespace BridgeSharp.Tests.Spec;

/// <summary>The doctor's C# half.</summary>
[Collection(nameof(Serial))]
public sealed class DoctorTests
{
    /// <summary>The C# side is described, nothing is missing, nothing is left behind. Spec: R32.1, R32.2.</summary>
    [Fact]
    public void Describes_a_sound_machine()
    {
        var before = torch.Tensor.TotalCount;
        var found = Examination.examine();
        Assert.DoesNotContain(found, finding => finding.state == "missing");
        string[] names = [".NET", "BridgeSharp", "TorchSharp", "environment", "libtorch", "CPU capability", "threads", "flags", "fingerprint"];
        Assert.Empty(names.Except(found.Select(finding => finding.name)));
        Assert.All(found, finding => Assert.NotEmpty(finding.value));
        Assert.Equal(before, torch.Tensor.TotalCount);
    }

    /// <summary>The newest version that a library names is found, by number, not by text. Spec: R32.3.</summary>
    [Fact]
    public void Finds_versions_of_libstdcxx()
    {
        var library = Path.GetTempFileName();
        try
        {
            File.WriteAllBytes(library, Encoding.Latin1.GetBytes("\u007fELF\0GLIBCXX_3.4.9\0GLIBCXX_3.4.32\0GLIBCXX_3.4.30\0"));
            Assert.Equal("3.4.32", Glibcxx.newest(library));
            File.WriteAllText(library, "nothing");
            Assert.Null(Glibcxx.newest(library));
        }
        finally
        {
            File.Delete(library);
        }

        Assert.True(Glibcxx.older("3.4.9", "3.4.32"));
        Assert.False(Glibcxx.older("3.4.32", "3.4.32"));
    }

    /// <summary>The fingerprint repeats itself at any number of threads, and leaves that number alone. Spec: R32.4.</summary>
    [Fact]
    public void Fingerprint_repeats_itself()
    {
        var threads = torch.get_num_threads();
        try
        {
            torch.set_num_threads(2);
            var first = Examination.fingerprint();
            Assert.Equal(2, torch.get_num_threads());
            torch.set_num_threads(1);
            Assert.Equal(first, Examination.fingerprint());
            Assert.Equal(16, first.Length);
        }
        finally
        {
            torch.set_num_threads(threads);
        }
    }

    /// <summary>Each result of the battery is the one that its digest is of. Spec: R12.1.</summary>
    [Fact]
    public void Results_are_those_of_the_battery()
    {
        using var scope = torch.NewDisposeScope();
        var results = Family.results();
        Assert.Equal(Family.battery(), results.ToDictionary(entry => entry.Key, entry => Digest.digest([new(entry.Key.Split('.')[0], entry.Value)])));
    }
}
