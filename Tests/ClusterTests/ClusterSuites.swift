import Testing

/// Everything that runs nodes: one after another, because each uses the whole machine.
@Suite(.serialized)
enum ClusterSuites {}
