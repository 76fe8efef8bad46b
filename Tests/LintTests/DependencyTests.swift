import Foundation
import Testing

/// `docs/dependencies.md` lists what `Package.swift` depends on, and to which version each package is held.
@Suite("Dependencies")
struct DependencyTests {
    private struct Package: Hashable, CustomStringConvertible {
        var url: String
        var version: String

        var description: String { "\(url) \(version)" }
    }

    /// Held to one minor version, or to one version.
    private let held = #/\.package\(url: "([^"]+)", (?:\.upToNextMinor\(from: |exact: )"([0-9.]+)"\)/#
    private let listed = #/\| \[[^\]]+\]\(([^)]+)\) \| ([0-9.]+) \| ([^|]+) \| [^|]+ \|/#

    @Test("every package is held to a minor version or to one version")
    func ranges() throws {
        let manifest = try Repository.text("Package.swift")
        let count = manifest.matches(of: #/\.package\(/#).count
        #expect(count > 10)
        #expect(manifest.matches(of: held).count == count, "use .upToNextMinor(from:) or exact:")
    }

    @Test("the document lists the same packages and versions, each with a licence")
    func document() throws {
        let manifest = try Repository.text("Package.swift").matches(of: held)
            .map { Package(url: String($0.1), version: String($0.2)) }
        let rows = try Repository.text("docs/dependencies.md").matches(of: listed)
        let document = rows.map { Package(url: String($0.1), version: String($0.2)) }
        #expect(Set(manifest) == Set(document))
        #expect(document.count == manifest.count)
        let licences: Set = ["Apache-2.0", "MIT"]
        for row in rows { #expect(licences.contains(String(row.3)), "\(row.1)") }
    }
}
