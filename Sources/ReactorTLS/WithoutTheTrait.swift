#if !TLS
// A program that uses this module without the trait is told by the compiler what to write, by the first type that it names.

/// In place of a type that is only there with the trait.
@available(
    *, unavailable, message: "ReactorTLS is off: write .package(url: …, from: …, traits: [\"TLS\"]) in the manifest"
)
public enum TLSClient {}
#endif
