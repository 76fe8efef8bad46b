import ArgumentParser
import Foundation

/// Plants every mutant into a copy of the package, each behind a condition of its own, so that one build holds them
/// all. Which one is in force the environment says.
struct Planter {
    /// The number of the mutant in force; unset or 0 for none.
    static let variable = "ZONEKEEPER_PLANTED_BUG"

    let package: String

    func plant() throws {
        var targets: Set<String> = []
        for (place, mutant) in Mutant.all.enumerated() {
            for edit in mutant.edits {
                try apply(edit, of: mutant, number: place + 1)
                targets.insert(String(edit.file.prefix { $0 != "/" }))
            }
        }
        for target in targets.sorted() {
            try Self.condition.write(
                toFile: "\(package)/Sources/\(target)/PlantedBug.swift", atomically: true, encoding: .utf8)
        }
        say("planted \(Mutant.all.count) faults in \(targets.sorted().joined(separator: ", "))")
    }

    private func apply(_ edit: Mutant.Edit, of mutant: Mutant, number: Int) throws {
        let path = "\(package)/Sources/\(edit.file)"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let parts = text.components(separatedBy: edit.original)
        guard parts.count == 2 else {
            throw ValidationError(
                "fault \(number), \(mutant.name): \(edit.file) has this \(parts.count - 1) times, not once:\n\(edit.original)\n"
                    + "Mend Tests/Simulator/Mutants.")
        }
        let planted = edit.replacement.replacingOccurrences(of: "PLANTED", with: "(plantedBug == \(number))")
        try parts.joined(separator: planted).write(toFile: path, atomically: true, encoding: .utf8)
    }

    private static let condition = """
        import Foundation

        /// Which of the planted faults is in force; 0 for none.
        let plantedBug = ProcessInfo.processInfo.environment["\(variable)"].flatMap { Int($0) } ?? 0

        """
}
