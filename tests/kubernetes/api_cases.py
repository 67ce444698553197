"""What dlrun relies on in an API server of Kubernetes, each a case that asks one: by the names of its function and by what it proves.

Each case gets a `scene`. Cases of FAULTS order faults, and so need a server that takes orders (fake_api_server); cases of RUNNING need
pods that run, and so an image with a shell. They are in the modules that are imported here, one for each subject.
"""

import api_eviction_cases
import api_fault_cases
import api_job_cases
import api_object_cases
import api_rights_cases
import api_taint_cases
import api_watch_cases
from api_scene import CASES, FAULTS, RUNNING, make_namespace, scene
